package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// screenTerminal is a terminal that shows frames instead of lines, until it is restored.
type screenTerminal struct {
	in, out *os.File
	state   *term.State
	once    sync.Once
}

// The sequences of a screen: another buffer than that of the shell, no cursor, and no line breaks by the terminal.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leaveScreen = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
	frameBegin  = "\x1b[?2026h\x1b[H" // the terminal shows it whole
	clearLine   = "\x1b[2K"
	frameEnd    = "\x1b[?2026l"
)

// openScreen prepares the terminal. Whoever calls it must call restore, however it ends.
func openScreen(in, out *os.File) (*screenTerminal, error) {
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	s := &screenTerminal{in: in, out: out, state: state}
	if _, err := io.WriteString(out, enterScreen); err != nil {
		return nil, errors.Join(err, s.restore())
	}
	return s, nil
}

// restore makes the terminal what it was. Further calls do nothing.
func (s *screenTerminal) restore() (err error) {
	s.once.Do(func() {
		_, written := io.WriteString(s.out, leaveScreen)
		err = errors.Join(written, term.Restore(int(s.in.Fd()), s.state))
	})
	return err
}

// size is that of the window; 80 columns and 24 lines where the terminal does not know.
func (s *screenTerminal) size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width < 1 || height < 1 {
		return 80, 24
	}
	return width, height
}

// draw shows lines, which contain no line breaks.
func (s *screenTerminal) draw(lines []string) error {
	var frame strings.Builder
	frame.WriteString(frameBegin)
	for i, l := range lines {
		if i > 0 {
			frame.WriteString("\r\n")
		}
		frame.WriteString(clearLine + l) // clearing behind a full line would take its last character
	}
	frame.WriteString(frameEnd)
	_, err := io.WriteString(s.out, frame.String())
	return err
}

// Keys that have a name; others are the character that they type.
const (
	keyUp        = "up"
	keyDown      = "down"
	keyPageUp    = "page up"
	keyPageDown  = "page down"
	keyHome      = "home"
	keyEnd       = "end"
	keyEscape    = "escape"
	keyInterrupt = "\x03"
)

// keySequences are what terminals send for the keys.
var keySequences = []struct{ sequence, key string }{
	{"\x1b[A", keyUp}, {"\x1bOA", keyUp}, {"\x1b[B", keyDown}, {"\x1bOB", keyDown}, {"\x1b[5~", keyPageUp},
	{"\x1b[6~", keyPageDown}, {"\x1b[H", keyHome}, {"\x1bOH", keyHome}, {"\x1b[1~", keyHome}, {"\x1b[F", keyEnd},
	{"\x1bOF", keyEnd}, {"\x1b[4~", keyEnd},
}

// keysOf are the keys in what a terminal sent. Sequences that are not known are left out.
func keysOf(sent []byte) (keys []string) {
next:
	for len(sent) > 0 {
		for _, known := range keySequences {
			if rest, found := bytes.CutPrefix(sent, []byte(known.sequence)); found {
				keys, sent = append(keys, known.key), rest
				continue next
			}
		}
		if sent[0] != '\x1b' {
			keys, sent = append(keys, string(sent[:1])), sent[1:]
			continue
		}
		if len(sent) == 1 {
			return append(keys, keyEscape)
		}
		// The end of a sequence is a letter or ~.
		end := 2
		for end < len(sent) && !(sent[end] >= '@' && sent[end] <= '~') {
			end++
		}
		sent = sent[min(end+1, len(sent)):]
	}
	return keys
}
