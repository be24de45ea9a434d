"""Files of the viewer's page, and a self-contained page with a replay inside."""

import base64
import gzip
from pathlib import Path
from shlex import quote

FOLDER = Path(__file__).parent
_MOST_BYTES = 100_000_000
PAGE, PLAY_PAGE, SCRIPT = "page.html", "play.html", "viewer.js"
_TAG = '<script src="viewer.js"></script>'
_LOADER = (
    "const packed=Uint8Array.from(atob(document.getElementById('viewer').textContent),c=>c.charCodeAt(0));"
    "new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).text().then(text=>"
    "document.body.append(Object.assign(document.createElement('script'),{textContent:text})))"
)


def page_with(replay: bytes) -> str:
    """Return an HTML page that shows a replay without other files, a server or an internet connection."""
    script = gzip.compress((FOLDER / SCRIPT).read_bytes(), 9, mtime=0)
    inside = f"{_data('replay', replay)}\n{_data('viewer', script)}\n<script>{_LOADER}</script>"
    return (FOLDER / PAGE).read_text(encoding="utf-8").replace(_TAG, inside)


def _data(name: str, content: bytes) -> str:
    return f'<script id="{name}" type="text/plain">{base64.b64encode(content).decode()}</script>'


def check_size(file: Path) -> None:
    """Raise a ValueError if a replay is too large for a page."""
    if (size := file.stat().st_size) > _MOST_BYTES:
        watch = f"fabric-rl watch {quote(file.as_posix())}"
        raise ValueError(f"{file}: {size / 1e6:,.0f} MB is too large for a page; watch it with {watch}")
