// What precompiled headers are compiled beside.
int main() {}
