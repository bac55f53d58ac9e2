package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// facts are the configuration lines that say of what a file of results is.
func facts(peers string) (map[string]string, error) {
	commit, err := exec.Command("git", "describe", "--always", "--dirty=+changes", "--exclude=*").Output()
	if err != nil {
		return nil, fmt.Errorf("asking git for the commit: %w", err)
	}
	return map[string]string{
		"commit":  strings.TrimSpace(string(commit)),
		"date":    time.Now().UTC().Format(time.DateOnly),
		"machine": machine(),
		"go":      "Go " + strings.TrimPrefix(runtime.Version(), "go"),
		"peers":   versionsOf(peers),
	}, nil
}

// machine names the processors and the system.
func machine() string {
	model := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for lines := bufio.NewScanner(bytes.NewReader(info)); lines.Scan(); {
			if key, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	system := map[string]string{"linux": "Linux", "darwin": "macOS"}
	return fmt.Sprintf("%d processors (%s, %s)", runtime.NumCPU(), model,
		cmp.Or(system[runtime.GOOS], runtime.GOOS))
}

// processors is what the processors of the machine did since it started, in ticks of the kernel.
type processors struct {
	total, busy float64
	known       bool // only Linux says so
}

// readProcessors reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. Time that
// the machine below took away (steal) counts as busy.
func readProcessors() (p processors) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return p
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return p
	}
	for i, field := range fields[1:9] {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return processors{}
		}
		p.total += ticks
		if i != 3 && i != 4 {
			p.busy += ticks
		}
	}
	p.known = true
	return p
}

// ticks is how many of them a second has on every port of Linux that Go has.
const ticks = 100

// othersSince returns the share of the processors, in percent, that programs other than ours used, which used own; -1
// if that is not known.
func (p processors) othersSince(before processors, own time.Duration) float64 {
	total := p.total - before.total
	if !p.known || !before.known || total <= 0 {
		return -1
	}
	return max(0, 100*(p.busy-before.busy-own.Seconds()*ticks)/total)
}
