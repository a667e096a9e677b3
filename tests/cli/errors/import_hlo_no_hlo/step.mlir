module @jit_f {
}
