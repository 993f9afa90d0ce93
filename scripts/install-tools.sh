#!/usr/bin/env bash
# Install the optional real tools that tests and exports are checked with, on Debian and its kin.
# gatefit itself needs none of them. What is there already is left alone.
set -euo pipefail

declare -A packages=(
  [gcc]=gcc [g++]=g++ [iverilog]=iverilog [verilator]=verilator [berkeley-abc]=berkeley-abc [yosys]=yosys
  [valgrind]=valgrind [node]=nodejs [chromium]=chromium
)
missing=()
for tool in "${!packages[@]}"; do
  command -v "$tool" >/dev/null || missing+=("${packages[$tool]}")
done
if [ "${#missing[@]}" -eq 0 ]; then
  echo "all optional tools are installed"
  exit 0
fi
command -v apt-get >/dev/null || { echo "error: no apt-get; install by hand: ${missing[*]}" >&2; exit 1; }
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
