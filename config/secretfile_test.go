package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretsAreReadFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const secret = "4f1b0c2a9d8e7f60"
	good := write("good", secret+"\r\n\n")
	for _, tt := range []struct {
		name    string
		flags   map[string]string
		environ []string
		where   string // the origin of console-token
		wrong   string
	}{
		{"a flag", map[string]string{"console-token-file": good}, nil, good + " (--console-token-file)", ""},
		{"a variable", nil, []string{"TENDRIL_CONSOLE_TOKEN_FILE=" + good}, good + " (TENDRIL_CONSOLE_TOKEN_FILE)", ""},
		{"both", map[string]string{"console-token-file": good}, []string{"TENDRIL_CONSOLE_TOKEN=" + secret}, "",
			"console-token-file and console-token (TENDRIL_CONSOLE_TOKEN) are both set"},
		{"no file", map[string]string{"console-token-file": filepath.Join(dir, "none")}, nil, "", "there is no such file"},
		{"a folder", map[string]string{"console-token-file": dir}, nil, "", "it cannot be read: is a directory"},
		{"an empty file", map[string]string{"console-token-file": write("empty", "\n")}, nil, "", "its content is empty"},
		{"a short secret", map[string]string{"console-token-file": write("short", "hunter2")}, nil, "",
			"its content has the wrong length"},
		{"a long file", map[string]string{"console-token-file": write("long", strings.Repeat("x", maxSecret+1))}, nil, "",
			"its content is longer than 65536 bytes"},
	} {
		cfg, err := Load(Sources{Flags: tt.flags, Environ: home(tt.environ...), Dir: dir,
			SystemFile: filepath.Join(dir, "none")})
		if tt.wrong != "" {
			var wrong *Error
			if !errors.As(err, &wrong) || len(wrong.Problems) != 1 || !strings.HasSuffix(wrong.Problems[0].Text, tt.wrong) ||
				wrong.Problems[0].Hint == "" || wrong.Problems[0].Where == "" {
				t.Errorf("%s: %v", tt.name, err)
			} else if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the secret is told: %v", tt.name, err)
			}
			continue
		}
		if err != nil || cfg.ConsoleToken != secret || cfg.Origin("console-token").String() != tt.where {
			t.Errorf("%s: %v, origin %v", tt.name, err, cfg.Origin("console-token"))
			continue
		}
		if e, err := cfg.Explain("console-token"); err != nil || e.Value != hidden || e.From.Where != tt.where {
			t.Errorf("%s: explained as %+v, %v", tt.name, e, err)
		}
	}
}

// TestEverySecretHasAFile: an option that is marked as secret gets the one for its file, which decides as much.
func TestEverySecretHasAFile(t *testing.T) {
	t.Parallel()
	secrets := 0
	for _, o := range Options() {
		if !o.secret {
			continue
		}
		secrets++
		file, found := Lookup(o.Name + secretFileSuffix)
		if !found || !file.isSecretFile() || file.Guard() != GuardAccess || file.Variable != o.Variable+"_FILE" ||
			file.Key != o.Key+"_file" || file.secret {
			t.Errorf("the file of %s: %+v", o.Name, file)
		}
	}
	if secrets == 0 {
		t.Error("no option is secret")
	}
	if pid, _ := Lookup("pid-file"); pid.isSecretFile() {
		t.Error("the PID file is taken for that of a secret")
	}
}
