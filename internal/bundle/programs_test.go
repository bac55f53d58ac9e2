package bundle

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMissingPrograms(t *testing.T) {
	t.Parallel()
	const hook = ".platform/hooks/prebuild/a"
	missing := func(file, line, name string) string {
		return file + ":" + line + ": program " + name + " not found on this machine"
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"nothing": {map[string]string{"Procfile": "web: here --now"}, nil},
		"a process": {map[string]string{"Procfile": "web: gone --now\nmailer: A=b exec lost"},
			[]string{missing("Procfile", "1", "gone"), missing("Procfile", "2", "lost")}},
		"a build command": {map[string]string{"Buildfile": "a: here\nb: gone x"},
			[]string{missing("Buildfile", "2", "gone")}},
		"an interpreter": {map[string]string{hook: "#!/nowhere/ruby -w\ngone"},
			[]string{missing(hook, "1", "/nowhere/ruby")}},
		"an interpreter of env": {map[string]string{hook: "#!/usr/bin/env -S A=b gone -u\n"},
			[]string{missing(hook, "1", "gone")}},
		"env finds it": {map[string]string{hook: "#!/usr/bin/env here\ngone\n"}, nil},
		"a script": {map[string]string{hook: "#!/bin/sh\nset -e\n# gone\nhere\ngone x; here\n"},
			[]string{missing(hook, "5", "gone")}},
		"a file of the bundle": {map[string]string{hook: "#!/bin/sh\n./bin/gone\n"},
			[]string{missing(hook, "2", "./bin/gone")}},
		"a file that is made": {map[string]string{"Buildfile": "a: here", "Procfile": "web: bin/app"}, nil},
		"an executable missing": {map[string]string{"Procfile": "web: ./plain"},
			[]string{"Procfile:1: the program ./plain is not executable"}},
		"an alternative": {map[string]string{hook: "#!/bin/sh\ngone || true\nif gone; then\n  gone\nfi\n" +
			"for x in a; do gone; done\n"}, nil},
		"a function":             {map[string]string{hook: "#!/bin/sh\ngone() {\n lost\n}\ngone\n"}, nil},
		"what a shell must read": {map[string]string{hook: "#!/bin/sh\ncat <<E\ngone\nE\n"}, nil},
		"a text of two lines":    {map[string]string{hook: "#!/bin/sh\necho 'a\ngone'\n"}, nil},
		"another path":           {map[string]string{hook: "#!/bin/sh\nexport PATH=/opt/x:$PATH\ngone\n"}, nil},
		"variables":              {map[string]string{hook: "#!/bin/sh\n$PROGRAM x\n\"gone\" x\n"}, nil},
		"values of several words": {map[string]string{hook: "#!/bin/sh\nA=$(here lost x)\nA=`here lost x`\nA='b lost c' here\n" +
			"A=\"b lost c\"\nexport A=$(here lost x)\nA=b gone x\n"}, []string{missing(hook, "7", "gone")}},
		"after an installation": {map[string]string{hook: "#!/bin/sh\nhere install -y gone\ngone\n",
			"Procfile": "web: lost"}, nil},
		"another language": {map[string]string{hook: "#!/usr/bin/env here\nimport gone\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := filepath.Join(folder(t, map[string]string{"here": "", "cat": ""}), "here")
			c.files["plain"] = ""
			b, err := Open(folder(t, c.files))
			if err != nil {
				t.Fatal(err)
			}
			for _, program := range []string{bin, filepath.Join(filepath.Dir(bin), "cat"),
				filepath.Join(b.Dir, filepath.FromSlash(hook))} {
				if err := os.Chmod(program, 0o755); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			if b, err = Open(b.Dir); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range b.MissingPrograms(filepath.Dir(bin), true) {
				got = append(got, strings.TrimPrefix(p.String(), b.Dir+"/"))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestScriptsThatCannotBeStartedAreFound(t *testing.T) {
	t.Parallel()
	const (
		windows = "#!/bin/sh\r\necho hello\r\n"
		command = ".ebextensions/a.config"
		refused = "the first line of ./run.sh ends with CR LF: the system would look for a program name that ends with CR"
		toUnix  = `type in the bundle's folder: sed -i 's/\r$//' run.sh`
		plain   = "the program ./run.sh is not executable"
		chmod   = "type in the bundle's folder: chmod +x run.sh"
	)
	for name, c := range map[string]struct {
		files   map[string]string // run.sh is executable if it contains the constant windows
		refused bool
		want    []string
	}{
		"a process": {map[string]string{"Procfile": "web: ./run.sh", "run.sh": windows}, true,
			[]string{"Procfile:1", refused, toUnix}},
		"a process beside others": {map[string]string{"Procfile": "web: true\nb: exec ./run.sh a", "run.sh": windows}, true,
			[]string{"Procfile:2", refused, toUnix}},
		"a build command": {map[string]string{"Buildfile": "b: ./run.sh", "run.sh": windows}, true,
			[]string{"Buildfile:1", refused, toUnix}},
		"a container command": {map[string]string{command: "container_commands: {a: {command: ./run.sh}}", "run.sh": windows},
			true, []string{command + ":1", refused, toUnix}},
		"a container command of several lines": {map[string]string{command: "container_commands:\n  a:\n    command: |\n" +
			"      ./run.sh\n", "run.sh": windows}, true, []string{command + ":2", refused, toUnix}},
		"a container command as a list in a folder": {map[string]string{"sub/run.sh": windows,
			command: "container_commands: {a: {command: [./run.sh], cwd: sub}}"},
			true, []string{command + ":1", refused, strings.Replace(toUnix, "run.sh", "sub/run.sh", 1)}},
		"a container command whose errors are ignored": {map[string]string{"run.sh": windows,
			command: "container_commands: {a: {command: ./run.sh, ignoreErrors: true}}"},
			false, []string{command + ":1", refused, toUnix}},
		"after a step that may rewrite it": {map[string]string{"Buildfile": "b: make", "Procfile": "web: ./run.sh",
			"run.sh": windows}, false, []string{"Procfile:1", refused, toUnix}},
		"after a step that rewrites it": {map[string]string{"Buildfile": "b: dos2unix *.sh", "Procfile": "web: ./run.sh",
			"run.sh": windows}, false, nil},
		"of a shell": {map[string]string{"Procfile": "web: sh -e run.sh", "run.sh": windows}, false,
			[]string{"Procfile:1", "the lines of run.sh end with CR LF: the shell treats CR as part of each command", toUnix}},
		"of a shell, but text": {map[string]string{"Procfile": "web: sh -c run.sh", "run.sh": windows}, false, nil},
		"a process without the permission": {map[string]string{"Procfile": "web: ./run.sh", "run.sh": "#!/bin/sh\n"}, false,
			[]string{"Procfile:1", plain, chmod}},
		"a process without the permission, after packages": {map[string]string{"Buildfile": "b: npm install",
			"Procfile": "web: true\nb: ./run.sh", "run.sh": "#!/bin/sh\n"}, false, []string{"Procfile:2", plain, chmod}},
		"a process that a step gives the permission": {map[string]string{"Buildfile": "b: chmod +x *.sh",
			"Procfile": "web: ./run.sh", "run.sh": "#!/bin/sh\n"}, false, nil},
		"a process that a build writes": {map[string]string{"Buildfile": "b: cc -o run.sh", "Procfile": "web: ./run.sh",
			"run.sh": "#!/bin/sh\n"}, false, nil},
		"another language": {map[string]string{"Procfile": "web: python3 run.sh", "run.sh": windows}, false, nil},
	} {
		var items []item
		for name, data := range c.files {
			mode := os.FileMode(0o644)
			if data == windows {
				mode = 0o755
			}
			items = append(items, item{name: name, data: data, mode: mode})
		}
		unpacked, err := unpack(t, archive(t, items...), nil)
		if err != nil {
			t.Fatal(err)
		}
		inFolder := folder(t, c.files)
		for _, i := range items {
			if err := os.Chmod(filepath.Join(inFolder, i.name), i.mode); err != nil {
				t.Fatal(err)
			}
		}
		for where, dir := range map[string]string{"folder": inFolder, "archive": unpacked} {
			t.Run(name+"/"+where, func(t *testing.T) {
				t.Parallel()
				b, err := Open(dir)
				if (err != nil) != c.refused {
					t.Fatalf("refused: %v, want %t", err, c.refused)
				}
				var found []Problem
				if err == nil {
					found = b.MissingPrograms("", true)
				} else if bad := new(invalidError); errors.As(err, &bad) {
					found = bad.Problems
				}
				var got []string
				for _, p := range found {
					got = append(got, strings.TrimPrefix(p.Where, dir+"/"), p.Text, p.Hint)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}
