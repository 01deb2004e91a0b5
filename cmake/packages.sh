# Debian packages moehub needs, and how to get them. Sourced by ./moehub and ./check.
BUILD_PACKAGES=(g++ cmake ninja-build libfmt-dev libcli11-dev libtomlplusplus-dev
  nlohmann-json3-dev libyaml-cpp-dev coinor-libcbc-dev zlib1g-dev libmetis-dev libsqlite3-dev
  pkg-config)
# npm fetches what draws the charts of pages, once. Debian's takes longer to install than moehub to
# build, so it waits until a page is asked for. Any npm will do, Debian's or not.
PAGE_PACKAGES=()
command -v npm >/dev/null || PAGE_PACKAGES=(npm)
CHECK_PACKAGES=(clang clang-format libclang-rt-14-dev llvm libgtest-dev librapidcheck-dev
  libbenchmark-dev dpkg-dev file bsdextrautils mandoc openmpi-bin libopenmpi-dev
  python3 python3-dev python3-numpy python3-pytest python3-matplotlib pybind11-dev mypy
  chromium chromium-driver python3-selenium)

# Installs those of "$@" that are missing; as root directly, otherwise with sudo, said first.
install_packages() {
  local missing=() package sudo=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' \
      || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" -ne 0 ]; then
    sudo=(sudo)
    command -v sudo >/dev/null || {
      echo "moehub: please install as root: apt-get install ${missing[*]}" >&2
      return 1
    }
  fi
  echo "moehub: installing ${missing[*]}" >&2
  local log
  log=$(mktemp)
  if ! { "${sudo[@]}" apt-get update && DEBIAN_FRONTEND=noninteractive \
         "${sudo[@]}" apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    echo "moehub: could not install ${missing[*]}" >&2
    return 1
  fi
  rm -f "$log"
}
