"""Protocol of the public Python API; defined in `shared.wire` and `shared.requests`, importable under this name too."""

from ragforge_tui.shared.requests.code import *  # noqa: F403
from ragforge_tui.shared.requests.memory import *  # noqa: F403
from ragforge_tui.shared.requests.past import *  # noqa: F403
from ragforge_tui.shared.requests.personas import *  # noqa: F403
from ragforge_tui.shared.requests.sessions import *  # noqa: F403
from ragforge_tui.shared.requests.turns import *  # noqa: F403
from ragforge_tui.shared.requests.work import *  # noqa: F403
from ragforge_tui.shared.wire import *  # noqa: F403
