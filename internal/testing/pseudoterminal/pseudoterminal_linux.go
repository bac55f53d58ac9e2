package pseudoterminal

import (
	"cmp"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Patience limits the wait for a text or a program's exit.
const Patience = 30 * time.Second

// Terminal is a terminal, initially of 80 × 24 characters.
type Terminal struct {
	t        *testing.T
	keyboard *os.File
	File     *os.File

	mu     sync.Mutex
	screen strings.Builder
}

// Open returns a terminal, which is closed at the end of the test.
func Open(t *testing.T) *Terminal {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("SKIPPED: this machine has no pseudo-terminals: %v", err)
	}
	number, err := unlockTerminal(keyboard)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}

	p := &Terminal{t: t, keyboard: keyboard, File: terminal}
	p.Resize(80, 24)
	var reading sync.WaitGroup
	reading.Go(p.readOutput)
	t.Cleanup(func() { keyboard.Close(); terminal.Close(); reading.Wait() })
	return p
}

func unlockTerminal(keyboard *os.File) (number int, err error) {
	conn, err := keyboard.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed == nil {
			number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	return number, cmp.Or(err, failed)
}

func (p *Terminal) readOutput() {
	text := make([]byte, 4096)
	for {
		n, err := p.keyboard.Read(text)
		p.mu.Lock()
		p.screen.Write(text[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Resize changes the size of the terminal.
func (p *Terminal) Resize(width, height uint16) {
	p.t.Helper()
	size := &unix.Winsize{Col: width, Row: height}
	if err := unix.IoctlSetWinsize(int(p.File.Fd()), unix.TIOCSWINSZ, size); err != nil {
		p.t.Fatal(err)
	}
}

// Modes returns the terminal modes.
func (p *Terminal) Modes() unix.Termios {
	p.t.Helper()
	modes, err := unix.IoctlGetTermios(int(p.File.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *modes
}

// Await waits until the output contains text, and discards everything up to its end.
func (p *Terminal) Await(text string) {
	p.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(Patience)
	for !p.consume(text) {
		select {
		case <-tick.C:
		case <-late:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.t.Fatalf("not written: %s\n%q", text, p.screen.String())
		}
	}
}

func (p *Terminal) consume(text string) (found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, rest, found := strings.Cut(p.screen.String(), text)
	if found {
		p.screen.Reset()
		p.screen.WriteString(rest)
	}
	return found
}

// Press types the keys.
func (p *Terminal) Press(keys string) {
	p.t.Helper()
	if _, err := io.WriteString(p.keyboard, keys); err != nil {
		p.t.Fatal(err)
	}
}
