package egress

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/evegateway/evegateway/auth"
)

// Value is a secret and where it comes from. The zero value is none.
type Value struct {
	file, env string
	text      auth.Secret
}

// File is a value that stands in a file. A file that cannot be read stops requests until it can be.
func File(path string) Value { return Value{file: path} }

// Env is the value of an environment variable. One that is not set stops requests; one that is set to nothing is empty.
func Env(name string) Value { return Value{env: name} }

// Text is a value that stands in the configuration.
func Text(s auth.Secret) Value { return Value{text: s} }

func (v Value) isZero() bool { return v == Value{} }

// String names the place, never the value.
func (v Value) String() string {
	switch {
	case v.file != "":
		return "file " + v.file
	case v.env != "":
		return "environment variable " + v.env
	case v.text.IsZero():
		return "nothing"
	}
	return "the configuration"
}

const maxValue = 64 << 10

// read returns the text as it stands there now.
func (v Value) read() (string, error) {
	switch {
	case v.file != "":
		return readFile(v.file)
	case v.env != "":
		text, ok := os.LookupEnv(v.env)
		if !ok {
			return "", fmt.Errorf("environment variable %s is not set", v.env)
		}
		return text, nil
	}
	return v.text.Reveal(), nil
}

func readFile(path string) (string, error) {
	f, err := os.Open(path) //nolint:gosec // the path comes from the operator's configuration
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxValue+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxValue {
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxValue)
	}
	return string(text), nil
}

// token reads a token: trimmed, printable, without spaces; empty if there is none.
func (v Value) token() (string, error) {
	text, err := v.read()
	if err != nil {
		return "", err
	}
	text = strings.TrimSpace(text)
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s holds something that is no token", v)
	}
	return text, nil
}

// header reads the value of a header: trimmed, printable.
func (v Value) header() (string, error) {
	text, err := v.read()
	if err != nil {
		return "", err
	}
	text = strings.TrimSpace(text)
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r > '~' }) {
		return "", fmt.Errorf("%s holds something that cannot stand in a header", v)
	}
	return text, nil
}

// line reads a user's name or password: whole, but for the line feed that ends a file.
func (v Value) line() (string, error) {
	text, err := v.read()
	if err != nil {
		return "", err
	}
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", fmt.Errorf("%s holds a control character", v)
	}
	return text, nil
}
