"""The package for PyPI: its wheels are built and installed, checked by mypy, and run against a daemon and under LangChain.

It runs in a virtual environment with the packages of requirements.txt, and installs the package there."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[2] / "clients" / "python"
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
MYPY = (sys.executable, "-m", "mypy", "--strict")
CARRIED = "import abridged._binary; print(abridged._binary.find(None, {'PATH': '/nowhere', 'HOME': '/nowhere'}))"


def run(*command, fails=False, **options):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=150, **options)
    if bool(done.returncode) != fails:
        sys.exit(f"{done.stdout[-4000:]}\npython: exit code {done.returncode} of {' '.join(map(str, command))}")
    return done.stdout


def wheel(folder, **variables):
    """Builds a wheel and installs it."""
    run(*PIP, "wheel", PACKAGE, "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, env={**os.environ, **variables})
    (made,) = folder.iterdir()
    run(*PIP, "install", made, "--no-deps", "--no-index", "--force-reinstall")
    return made.name


def carries(home, daemon):
    """A wheel for a platform carries the daemon, and the one that is carried is found and runs."""
    made = wheel(home / "carrying", ABRIDGED_CARRY=daemon)
    if "-py3-none-any" in made:
        sys.exit(f"python: the wheel for a platform is named {made}")
    found = run(sys.executable, "-c", CARRIED).strip()
    if not found.endswith("/abridged/bin/abridged") or not run(found, "--version").startswith("abridged "):
        sys.exit(f"python: the daemon that is carried is {found}")


def types():
    run(sys.executable, PACKAGE / "generate.py", "--check")
    run(*MYPY, "--package", "abridged", "--python-version", "3.10")
    run(*MYPY, HERE / "typed.py")
    said = run(*MYPY, HERE / "mistyped.py", fails=True)
    found = {int(line) for line in re.findall(r"mistyped\.py:(\d+): error", said)}
    wrong = {number for number, line in enumerate((HERE / "mistyped.py").read_text().splitlines(), 1) if line.endswith("# error")}
    if found != wrong:
        sys.exit(f"python: mypy finds mistakes in the lines {sorted(found)} and not in {sorted(wrong)}")


def main(home):
    daemon = shutil.which(os.environ.get("ABRIDGED_BIN", "abridged"))
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        del os.environ[name]
    os.environ |= {"ABRIDGED_BIN": daemon, "ABRIDGED_DATA_DIR": f"{home}/data", "ABRIDGED_CONFIG_DIR": f"{home}/config", "TMPDIR": str(home), "MYPY_CACHE_DIR": f"{home}/mypy"}
    carries(home, daemon)
    if not wheel(home / "pure").endswith("-py3-none-any.whl"):
        sys.exit("python: a wheel that carries nothing is for one platform")
    types()
    if run(sys.executable, HERE / "typed.py", cwd=home).split() != ["cancelled", "cancelled", "1", "None"]:
        sys.exit("python: typed.py says something else")
    run(sys.executable, "-W", "error::ResourceWarning", HERE / "client.py", cwd=home)
    for name, text in re.findall(r"```python (asyncio|threads)\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL):
        program = home / f"readme_{name}.py"
        program.write_text(text)
        run(*MYPY, program)
        run(sys.executable, program, cwd=home)
    run(sys.executable, HERE / "agent.py", cwd=home)
    print("python: ok, two wheels, mypy, a client and agents of LangChain")


with tempfile.TemporaryDirectory() as home:
    main(pathlib.Path(home))
