package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

type options struct {
	rounds                     int
	only                       *regexp.Regexp // nil means all
	results, peers             string
	draw, write, resume, scale bool
}

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	var o options
	var only string
	var install, fresh, list bool
	flags := flag.NewFlagSet("report", flag.ExitOnError)
	flags.IntVar(&o.rounds, "rounds", 3, "rounds of the suite")
	flags.StringVar(&only, "only", "", "regular expression of the steps to run (default all)")
	flags.StringVar(&o.results, "o", filepath.Join("bench", "results.txt"), "file of the results")
	flags.StringVar(&o.peers, "peers", peersFolder(), "folder of the programs that tendril is compared with")
	flags.BoolVar(&install, "install", false,
		"install these programs (needs Go, npm, Maven with a JDK, and Python 3) and exit")
	flags.BoolVar(&fresh, "new", false, "start a new file of results")
	flags.BoolVar(&o.draw, "draw", false, "run nothing: use the results that are there")
	flags.BoolVar(&o.write, "write", false, "write the tables into docs instead of printing them")
	flags.BoolVar(&o.scale, "scale", false,
		"run the steps of docs/scale.md instead: 10^7 messages, which take several GB of disk")
	flags.BoolVar(&list, "list", false, "list the steps and exit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || o.rounds < 1 {
		return errors.New("it takes no arguments, and at least one round: see -help")
	}
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("invalid -only: %w", err)
	}
	o.only, o.resume = pattern, !fresh

	if list {
		for _, s := range suite {
			if s.scale == o.scale {
				fmt.Printf("%-22s go test -run '^$' -bench '%s' -benchtime %s ./%s\n", s.name, s.bench, s.benchtime, s.pkg)
			}
		}
		return nil
	}
	if err := toModule(); err != nil {
		return err
	}
	if install {
		return installPeers(o.peers)
	}
	var failed error
	if !o.draw {
		failed = interruptible(func(stop <-chan os.Signal) error { return runAll(&o, stop) })
	}
	if errors.Is(failed, errStopped) {
		return failed
	}
	return errors.Join(failed, show(&o))
}

func interruptible(f func(<-chan os.Signal) error) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return f(signals)
}

func toModule() error {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("looking for go.mod: %w", err)
	}
	return os.Chdir(filepath.Dir(strings.TrimSpace(string(out))))
}

func show(o *options) error {
	data, err := os.ReadFile(o.results)
	if err != nil {
		return err
	}
	all, err := read(bytes.NewReader(data), o.results)
	if err != nil {
		return err
	}

	if o.write {
		return writeDocuments("docs", all)
	}
	fmt.Println(conditions(all))
	for _, t := range tables {
		fmt.Printf("\n%s\n\n%s", t.name, t.markdown(all))
	}
	return nil
}
