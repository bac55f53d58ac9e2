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

// secretFileSuffix ends the name of the option that names a file for the value of a secret option.
const secretFileSuffix = "-file"

// maxSecret bounds the file of a secret.
const maxSecret = 64 << 10

// withSecretFiles puts behind each secret option the one that names a file for its value.
func withSecretFiles(options []Option) (all []Option) {
	for _, o := range options {
		all = append(all, o)
		if o.secret {
			all = append(all, Option{Name: o.Name + secretFileSuffix, Serve: o.Serve, Live: o.Live,
				Example: "/run/secrets/" + o.Name, DefaultNote: "none",
				Help:   "File with the value of --" + o.Name + ", in its place.",
				Detail: "Line breaks at its end do not count. It is read at the start and at each reload.",
				value:  checked("a path of a file", filePath)})
		}
	}
	return all
}

// isSecretFile reports whether the option names the file of a secret one.
func (o *Option) isSecretFile() bool {
	name, found := strings.CutSuffix(o.Name, secretFileSuffix)
	secret, known := Lookup(name)
	return found && known && secret.secret
}

// readSecrets gives the secret options that a file was named for the content of it.
func (l deriver) readSecrets() {
	for i := range l.cfg.options {
		o := &l.cfg.options[i]
		if !o.secret {
			continue
		}
		named := l.option(o.Name + secretFileSuffix)
		path := named.get(&l.cfg.Settings)
		if !l.isSet(named.Name) || path == "" {
			continue
		}
		if l.isSet(o.Name) {
			l.clash(named.Name, "set only one of them", "%s and %s (%s) are both set", named.Name, o.Name, l.origin(o.Name))
			continue
		}
		text, err := readSecret(path)
		if err == nil {
			err = o.set(&l.cfg.Settings, text)
		}
		if err != nil {
			l.clash(named.Name, "give the path of a file that this user may read, with "+o.Allowed(), "%s %s: %s", named.Name,
				shown(path), secretProblem(err))
			continue
		}
		from := l.origin(named.Name)
		l.record(o.Name, Origin{from.Layer, path + " (" + from.Where + ")"})
	}
}

// readSecret reads the value in a file, without the line breaks at its end. A file that another user decides about is
// refused.
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

// secretProblem says what is wrong with the file of a secret, and nothing of its content.
func secretProblem(err error) string {
	var reason *fs.PathError
	var wrong *trust.Error
	switch {
	case errors.As(err, &wrong):
		return fmt.Sprintf("%s is not trusted, since %s; type '%s'", wrong.Path, wrong.Text, wrong.Fix)
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file"
	case errors.As(err, &reason):
		return fmt.Sprintf("it cannot be read: %v", reason.Err)
	}
	return "its content " + err.Error()
}
