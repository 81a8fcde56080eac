package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/evegateway/evegateway/cursor"
)

type versionCommand struct{}

// Run implements the command.
func (versionCommand) Run(p *process) error {
	version, revision := "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " (" + s.Value + ")"
			}
		}
	}
	_, err := fmt.Fprintf(p.stdout, "gateway %s%s\nEve stream versions %d to %d\n%s %s/%s\n", version, revision,
		cursor.MinVersion, cursor.MaxVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
