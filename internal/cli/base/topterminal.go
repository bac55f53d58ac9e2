package base

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"
)

// ScreenTerminal is a terminal in full-screen mode.
type ScreenTerminal struct {
	in, Out *os.File
	state   *term.State
	once    sync.Once
}

// Terminal control sequences.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	LeaveScreen = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
	frameBegin  = "\x1b[?2026h\x1b[H"
	clearLine   = "\x1b[2K"
	frameEnd    = "\x1b[?2026l"
)

// openScreen switches to full-screen mode. The caller must call restore.
func openScreen(in, out *os.File) (*ScreenTerminal, error) {
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	s := &ScreenTerminal{in: in, Out: out, state: state}
	if _, err := io.WriteString(out, enterScreen); err != nil {
		return nil, errors.Join(err, s.restore())
	}
	return s, nil
}

func (s *ScreenTerminal) restore() (err error) {
	s.once.Do(func() {
		_, written := io.WriteString(s.Out, LeaveScreen)
		err = errors.Join(written, term.Restore(int(s.in.Fd()), s.state))
	})
	return err
}

// Size returns the size of the window, or 80 × 24 if unknown.
func (s *ScreenTerminal) Size() (width, height int) {
	width, height, err := term.GetSize(int(s.Out.Fd()))
	if err != nil || width < 1 || height < 1 {
		return 80, 24
	}
	return width, height
}

// draw displays lines, which must not contain line breaks.
func (s *ScreenTerminal) draw(lines []string) error {
	var frame strings.Builder
	frame.WriteString(frameBegin)
	for i, l := range lines {
		if i > 0 {
			frame.WriteString("\r\n")
		}
		frame.WriteString(clearLine + l) // clearing after a full line would erase its last character
	}
	frame.WriteString(frameEnd)
	_, err := io.WriteString(s.Out, frame.String())
	return err
}

// Screen is the content of a full-screen command.
type Screen interface {
	Lines(width, height int) []string
	// Press handles a key.
	Press(key string, height int) (quit bool)
}

// CanDraw reports whether both in and out are a terminal that can be drawn on.
func (c *CLI) CanDraw() (in, out *os.File, can bool) {
	in, _ = c.In.(*os.File)
	out, _ = Unescaped(c.Out).(*os.File)
	return in, out, in != nil && out != nil && c.Tty && c.TtyIn && c.Env("TERM") != "dumb"
}

// ShowScreen displays s until a key or a signal quits or ctx is done. It redraws s after each update, key and resize.
func ShowScreen[T any](ctx context.Context, in, out *os.File, s Screen, updates <-chan T, update func(T)) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(hangUp)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)

	screen, err := openScreen(in, out)
	if err != nil {
		return fmt.Errorf("preparing the terminal: %w", err)
	}
	defer func() { err = errors.Join(err, screen.restore()) }()

	keys := make(chan string)
	go readKeys(ctx, in, keys)
	for {
		width, height := screen.Size()
		if err := screen.draw(s.Lines(width, height)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-hangUp:
			return nil
		case <-resized:
		case u := <-updates:
			update(u)
		case key, open := <-keys:
			if !open || s.Press(key, height) {
				return nil
			}
		}
	}
}

// Names of special keys. Any other key is the character typed.
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

var keySequences = []struct{ sequence, key string }{
	{"\x1b[A", KeyUp}, {"\x1bOA", KeyUp}, {"\x1b[B", KeyDown}, {"\x1bOB", KeyDown}, {"\x1b[5~", KeyPageUp},
	{"\x1b[6~", KeyPageDown}, {"\x1b[H", KeyHome}, {"\x1bOH", KeyHome}, {"\x1b[1~", KeyHome}, {"\x1b[F", KeyEnd},
	{"\x1bOF", KeyEnd}, {"\x1b[4~", KeyEnd},
}

// KeysOf parses terminal input. It skips unknown sequences.
func KeysOf(sent []byte) (keys []string) {
	for len(sent) > 0 {
		key, n := firstKey(sent)
		if key != "" {
			keys = append(keys, key)
		}
		sent = sent[n:]
	}
	return keys
}

func firstKey(sent []byte) (key string, n int) {
	for _, known := range keySequences {
		if bytes.HasPrefix(sent, []byte(known.sequence)) {
			return known.key, len(known.sequence)
		}
	}

	switch {
	case sent[0] != '\x1b':
		return string(sent[:1]), 1
	case len(sent) == 1:
		return KeyEscape, 1
	}

	end := 2
	for end < len(sent) && (sent[end] < '@' || sent[end] > '~') {
		end++
	}
	return "", min(end+1, len(sent))
}

// readKeys closes the channel at the end of the input. Once ctx is done, it returns only after the next key, because
// reading cannot be interrupted.
func readKeys(ctx context.Context, in io.Reader, keys chan<- string) {
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
