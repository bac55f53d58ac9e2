package base

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// ScreenTerminal is a terminal that shows frames instead of lines, until it is restored.
type ScreenTerminal struct {
	in, Out *os.File
	state   *term.State
	once    sync.Once
}

// The sequences of a screen: another buffer than that of the shell, no cursor, and no line breaks by the terminal.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	LeaveScreen = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
	frameBegin  = "\x1b[?2026h\x1b[H" // the terminal shows it whole
	clearLine   = "\x1b[2K"
	frameEnd    = "\x1b[?2026l"
)

// OpenScreen prepares the terminal. Whoever calls it must call restore, however it ends.
func OpenScreen(in, out *os.File) (*ScreenTerminal, error) {
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	s := &ScreenTerminal{in: in, Out: out, state: state}
	if _, err := io.WriteString(out, enterScreen); err != nil {
		return nil, errors.Join(err, s.Restore())
	}
	return s, nil
}

// Restore makes the terminal what it was. Further calls do nothing.
func (s *ScreenTerminal) Restore() (err error) {
	s.once.Do(func() {
		_, written := io.WriteString(s.Out, LeaveScreen)
		err = errors.Join(written, term.Restore(int(s.in.Fd()), s.state))
	})
	return err
}

// Size is that of the window; 80 columns and 24 lines where the terminal does not know.
func (s *ScreenTerminal) Size() (width, height int) {
	width, height, err := term.GetSize(int(s.Out.Fd()))
	if err != nil || width < 1 || height < 1 {
		return 80, 24
	}
	return width, height
}

// Draw shows lines, which contain no line breaks.
func (s *ScreenTerminal) Draw(lines []string) error {
	var frame strings.Builder
	frame.WriteString(frameBegin)
	for i, l := range lines {
		if i > 0 {
			frame.WriteString("\r\n")
		}
		frame.WriteString(clearLine + l) // clearing behind a full line would take its last character
	}
	frame.WriteString(frameEnd)
	_, err := io.WriteString(s.Out, frame.String())
	return err
}

// Keys that have a name; others are the character that they type.
const (
	KeyUp        = "up"
	KeyDown      = "down"
	KeyPageUp    = "page up"
	KeyPageDown  = "page down"
	KeyHome      = "home"
	KeyEnd       = "end"
	KeyEscape    = "escape"
	KeyInterrupt = "\x03"
)

// keySequences are what terminals send for the keys.
var keySequences = []struct{ sequence, key string }{
	{"\x1b[A", KeyUp}, {"\x1bOA", KeyUp}, {"\x1b[B", KeyDown}, {"\x1bOB", KeyDown}, {"\x1b[5~", KeyPageUp},
	{"\x1b[6~", KeyPageDown}, {"\x1b[H", KeyHome}, {"\x1bOH", KeyHome}, {"\x1b[1~", KeyHome}, {"\x1b[F", KeyEnd},
	{"\x1bOF", KeyEnd}, {"\x1b[4~", KeyEnd},
}

// KeysOf are the keys in what a terminal sent. Sequences that are not known are left out.
func KeysOf(sent []byte) (keys []string) {
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
			return append(keys, KeyEscape)
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

// ReadKeys sends the keys that are typed, and closes the channel at the end of the input. It waits for a key when ctx
// ends, and ends with the process then.
func ReadKeys(ctx context.Context, in io.Reader, keys chan<- string) {
	defer close(keys)
	sent := make([]byte, 256)
	for {
		n, err := in.Read(sent)
		for _, key := range KeysOf(sent[:n]) {
			select {
			case keys <- key:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}
