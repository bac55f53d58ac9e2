package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"tendril/internal/host/trust"
)

const secretFileSuffix = "-file"

const maxSecret = 64 << 10

func (o *Option) fileOption() *Option {
	file := &Option{Name: o.Name + secretFileSuffix, isSecretFile: true, Serve: o.Serve, Live: o.Live,
		Example: "/run/secrets/" + o.Name,
		Help:    "File that holds the value of --" + o.Name + ".",
		value:   file(o.secretFile)}
	file.complete(o.Group)
	return file
}

func readSecrets(l *loader) {
	for _, o := range l.rows {
		if o.IsSecret() {
			assignFromFile(l, o)
		}
	}
}

func assignFromFile(l *loader, secret *Option) {
	named := l.option(secret.Name + secretFileSuffix)
	path := named.value.get()
	if path == "" {
		return
	}

	if l.isSet(secret.Name) {
		l.refuseOption(named.Name, "use only one of them", "%s and %s (%s) are both set", named.Name, secret.Name,
			l.origin(secret.Name))
		return
	}

	text, err := readSecret(path)
	if err == nil {
		err = secret.value.set(text)
	}
	if err != nil {
		l.refuseOption(named.Name, "use a file that this user can read, with "+secret.Allowed(), "%s %s: %s", named.Name,
			shown(path), secretProblem(err))
		return
	}

	from := l.origin(named.Name)
	l.record(secret.Name, Origin{from.Layer, path + " (" + from.Where + ")"})
}

func readSecret(path string) (string, error) {
	if err := trust.File(path); err != nil {
		return "", err
	}

	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > maxSecret:
		return "", fmt.Errorf("is longer than %d bytes", maxSecret)
	}

	text := strings.TrimRight(string(data), "\r\n")
	if text == "" {
		return "", errors.New("is empty")
	}

	return text, nil
}

func secretProblem(err error) string {
	var reason *fs.PathError
	var wrong *trust.Error
	switch {
	case errors.As(err, &wrong):
		return fmt.Sprintf("%s is not trusted: %s; type '%s'", wrong.Path, wrong.Text, wrong.Fix)
	case errors.Is(err, fs.ErrNotExist):
		return "file not found"
	case errors.As(err, &reason):
		return fmt.Sprintf("cannot be read: %v", reason.Err)
	}
	return "its content " + err.Error()
}
