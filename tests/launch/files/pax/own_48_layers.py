"""An experiment of one's own."""
from paxml import experiment_registry
from paxml.tasks.lm.params import lm_cloud
from praxis import layers

WIDER = 4


@experiment_registry.register
class Deeper(lm_cloud.LmCloudSpmd32B):
  """48 layers on 128 chips.

  Global batch size = 32 * 4 * 8 = 1024
  """
  NUM_LAYERS = 48  # from 40
  MODEL_DIMS: int = 8192
  HIDDEN_DIMS = MODEL_DIMS * WIDER
  ICI_MESH_SHAPE = [1,
                    32, 4]
  CHECKPOINT_POLICY = layers.AutodiffCheckpointType.SAVE_NOTHING

  def task(self):
    task_p = super().task()
    task_p.train.num_train_steps = 300
    return task_p
