package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/evegateway/evegateway/cursor"
)

// maxCursorFile is far more than the text form of any valid cursor.
const maxCursorFile = 64 << 10

// cursorFile is the path of a file that holds a cursor: its text form, in a line.
type cursorFile string

// load reads the file; the error is os.ErrNotExist when there is none. A damaged file is an error and never the
// beginning.
func (f cursorFile) load() (cursor.Cursor, error) {
	file, err := os.Open(string(f))
	if err != nil {
		return cursor.Cursor{}, fmt.Errorf("cursor file: %w", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxCursorFile))
	if err != nil {
		return cursor.Cursor{}, fmt.Errorf("cursor file: %w", err)
	}
	c, err := parseCursor(string(text))
	if err != nil {
		return cursor.Cursor{}, fmt.Errorf("cursor file %s: %w", f, err)
	}
	return c, nil
}

// save replaces the file: a reader, and a process that dies in the middle, finds the old cursor or the new one. It
// does not wait for the disk, which would cost far more than a record: after a power cut an older cursor may stand
// there, and its records come twice.
func (f cursorFile) save(c cursor.Cursor) error {
	text, err := c.MarshalText()
	if err != nil {
		return fmt.Errorf("cursor file: %w", err)
	}
	next := string(f) + ".next"
	if err := os.WriteFile(next, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("cursor file: %w", err)
	}
	if err := os.Rename(next, string(f)); err != nil {
		return fmt.Errorf("cursor file: %w", err)
	}
	return nil
}

func parseCursor(text string) (cursor.Cursor, error) {
	var c cursor.Cursor
	if err := c.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
		return cursor.Cursor{}, err
	}
	return c, nil
}
