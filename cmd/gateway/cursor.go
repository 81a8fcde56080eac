package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/evegateway/evegateway/cursor"
)

type cursorCommand struct {
	Cursor string `arg:"" name:"file-or-text" help:"A file that gateway subscribe saves its cursor to, - for standard input, or the text in it."`
}

// Run implements the command.
func (c *cursorCommand) Run(p *process) error {
	decoded, err := c.decode(p.stdin)
	if err != nil {
		return err
	}
	text, err := decoded.MarshalJSON()
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%s\n", text)
	return nil
}

func (c *cursorCommand) decode(stdin io.Reader) (cursor.Cursor, error) {
	if strings.HasPrefix(c.Cursor, "evc1.") {
		return parseCursor(c.Cursor)
	}
	if c.Cursor == "-" {
		text, err := io.ReadAll(io.LimitReader(stdin, maxCursorFile))
		if err != nil {
			return cursor.Cursor{}, fmt.Errorf("reading standard input: %w", err)
		}
		return parseCursor(string(text))
	}
	decoded, err := cursorFile(c.Cursor).load()
	if errors.Is(err, os.ErrNotExist) {
		return cursor.Cursor{}, fmt.Errorf("%w; the text of a cursor begins with evc1", err)
	}
	return decoded, err
}
