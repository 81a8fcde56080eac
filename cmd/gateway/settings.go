package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
)

// settings gives the flags that are not on the command line a value: first from the environment, then from the
// configuration file. An empty value is none.
//
// Kong's own support for environment variables is not used, because there whatever a resolver says, and so the file,
// wins over the environment.
//
// Variables with the prefix that name no flag are ignored: Kubernetes gives every container variables that are named
// after services, EVE_GATEWAY_PORT and EVE_GATEWAY_SERVICE_HOST among them for one called eve-gateway. So no flag may
// ever have such a name.
type settings struct {
	getenv func(string) string
	path   string            // of the file; empty: none
	file   map[string]string // by flag name
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "EVE_GATEWAY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// newSettings reads the configuration file of a command, if there is one: the one on the command line, else the one in
// the environment.
func newSettings(command *kong.Context, getenv func(string) string) (*settings, error) {
	s := &settings{getenv: getenv, path: getenv(variable("config"))}
	for _, p := range command.Path {
		if p.Flag != nil && p.Flag.Name == "config" {
			s.path, _ = command.FlagValue(p.Flag).(string)
		}
	}
	if s.path == "" {
		return s, nil
	}
	var names []string
	for _, f := range command.Selected().Flags {
		if f.Name != "config" {
			names = append(names, f.Name)
		}
	}
	if err := s.load(names); err != nil {
		return nil, err
	}
	return s, nil
}

// load reads the file, whose keys are flag names.
func (s *settings) load(names []string) error {
	f, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	defer func() { _ = f.Close() }()
	d := yaml.NewDecoder(f)
	if err := d.Decode(&s.file); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("configuration: %s: %s", s.path, yaml.FormatError(err, false, false))
	}
	if err := d.Decode(&map[string]string{}); !errors.Is(err, io.EOF) {
		return fmt.Errorf("configuration: %s holds more than one document", s.path)
	}
	for _, key := range slices.Sorted(maps.Keys(s.file)) {
		if !slices.Contains(names, key) {
			return fmt.Errorf("configuration: %s: unknown key %q%s", s.path, key, suggestion(key, names))
		}
	}
	return nil
}

// Validate implements kong.Resolver.
func (s *settings) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver.
func (s *settings) Resolve(_ *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	if parent.Command == nil { // --help
		return nil, nil
	}
	text, from := s.getenv(variable(flag.Name)), "$"+variable(flag.Name)
	if text == "" {
		text, from = s.file[flag.Name], s.path
	}
	if text == "" {
		return nil, nil
	}
	// Parsed once for nothing, since only here it is known where a bad value comes from.
	if err := flag.Parse(kong.Scan().PushTyped(text, kong.FlagValueToken), reflect.New(flag.Target.Type()).Elem()); err != nil {
		if inner := errors.Unwrap(err); inner != nil { // kong says the flag's name itself
			err = inner
		}
		return nil, fmt.Errorf("from %s: %w", from, err)
	}
	return text, nil
}

// suggestion names the known name that an unknown one is probably meant to be, if there is one.
func suggestion(name string, known []string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	best, least := "", 4 // more than three changes are no slip of the finger
	for _, k := range known {
		if d := distance(name, k); d < least && d < len(k)/2 {
			best, least = k, d
		}
	}
	if best == "" {
		return "; known are " + strings.Join(known, ", ")
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance counts the letters to insert, remove or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// describeFlag is the help of a flag: for commands that take settings, with where else it can be set.
func describeFlag(v *kong.Value) string {
	if v.Flag == nil || v.Tag == nil || !v.Tag.Has("setting") {
		return v.Help
	}
	return fmt.Sprintf("%s ($%s)", strings.TrimSuffix(v.Help, "."), variable(v.Name))
}
