package supervisor

import (
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

const unlimited = math.MaxUint64

type rlimit struct {
	name       string
	soft, hard uint64
}

func parseLimits(limits map[string]string) ([]rlimit, error) {
	var parsed []rlimit
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if _, ok := limitNumbers()[name]; !ok {
			return nil, limitNameError(name)
		}

		softText, hardText, both := strings.Cut(limits[name], ":")
		if !both {
			hardText = softText
		}

		soft, err := parseLimit(softText)
		hard, err2 := parseLimit(hardText)
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("limit %s=%s: use a whole number or unlimited, or both limits as soft:hard, for "+
				"example %s=1024 or %s=1024:unlimited", name, limits[name], name, name)
		}
		if soft > hard {
			return nil, fmt.Errorf("limit %s=%s: the soft limit cannot be above the hard limit", name, limits[name])
		}

		parsed = append(parsed, rlimit{name, soft, hard})
	}
	return parsed, nil
}

func parseLimit(text string) (uint64, error) {
	if text == "unlimited" {
		return unlimited, nil
	}
	return strconv.ParseUint(text, 10, 63)
}

func limitNameError(name string) error {
	known := slices.Sorted(maps.Keys(limitNumbers()))
	if len(known) == 0 {
		return fmt.Errorf("limit %s: limits are only supported on Linux: remove them here", name)
	}
	return fmt.Errorf("limit %s: unknown limit: use %s", name, strings.Join(known, ", "))
}

const barrierScript = `read -r go <&3 || exit 1
exec 3<&-
exec "$@"`

// startBarrier delays a program until its limits are set. A nil barrier does nothing.
type startBarrier struct {
	inside *os.File
	pipe   io.WriteCloser
}

func newStartBarrier(cmd *exec.Cmd, limits []rlimit) (*startBarrier, error) {
	if len(limits) == 0 {
		return nil, nil
	}
	if err := checkExecutable(shellPath); err != nil {
		return nil, fmt.Errorf("setting limits needs %s: install a shell, or remove the limits: %w",
			shellPath, err)
	}
	inside, pipe, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("creating a pipe: %w", err)
	}
	cmd.ExtraFiles = []*os.File{inside}
	cmd.Args = slices.Concat([]string{"sh", "-c", barrierScript, "sh", cmd.Path}, cmd.Args[1:])
	cmd.Path = shellPath
	return &startBarrier{inside: inside, pipe: pipe}, nil
}

func (b *startBarrier) started() {
	if b != nil {
		_ = b.inside.Close()
	}
}

func (b *startBarrier) open(pid int, limits []rlimit, user *identity) error {
	if b == nil {
		return nil
	}
	for _, limit := range limits {
		if err := setLimit(pid, limit, user); err != nil {
			return err
		}
	}
	_, err := io.WriteString(b.pipe, "go\n")
	b.close()
	if err != nil {
		return fmt.Errorf("starting the program: %w", err)
	}
	return nil
}

func (b *startBarrier) close() {
	if b != nil {
		_ = b.pipe.Close()
	}
}
