package bundle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMissingPrograms: what certainly runs and is not there is named; what may not run,
// or may be made or installed by then, is not.
func TestMissingPrograms(t *testing.T) {
	t.Parallel()
	const hook = ".platform/hooks/prebuild/a"
	missing := func(file, line, name string) string {
		return file + ":" + line + ": there is no program " + name + " on this machine"
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
			for _, p := range b.MissingPrograms(filepath.Dir(bin)) {
				got = append(got, strings.TrimPrefix(p.String(), b.Dir+"/"))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
