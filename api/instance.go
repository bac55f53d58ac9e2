package api

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"tendril/internal/host/datadir"
)

// InstanceFile is the name of the file in the data directory that says which
// environment runs on it and where it answers.
const InstanceFile = "instance.json"

// ErrNotRunning means that no environment runs on the data directory.
var ErrNotRunning = errors.New("no environment runs")

// Instance says which environment runs on a data directory. The environment
// writes it once it is up and removes it when it ends; it holds no secret.
type Instance struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
	// Program is the file of the program; the zero value for versions that did not write it.
	Program     Program `json:"program,omitzero"`
	Environment string  `json:"environment"`
	// Console is the host:port at which this machine reaches the console, "" when it is off;
	// ConsoleCertificate the fingerprint of its certificate, "" where it speaks plain HTTP.
	Console            string `json:"console"`
	ConsoleCertificate string `json:"console_certificate,omitempty"`
	// Endpoint is the URL of the embedded SQS endpoint; "" when the environment
	// works on Amazon SQS.
	Endpoint  string `json:"endpoint"`
	Region    string `json:"region"`
	AccountID string `json:"account_id"`
	// Queues are those that it works on, in their order; none when it only
	// serves queues.
	Queues    []InstanceQueue `json:"queues,omitempty"`
	StartedAt time.Time       `json:"started_at"`
	// AppPort is the port of the app's first replica; 0 where no app is started.
	AppPort int `json:"app_port,omitempty"`
	// Folder is the absolute path of the app's folder, or of the working folder of 'tendril up' where it has none.
	Folder string `json:"folder,omitempty"`
	// AppliesMachine is true where a deployment applies the sections of .ebextensions that change the machine.
	AppliesMachine bool `json:"applies_machine,omitempty"`
}

// Program identifies the file of a running program, which other processes do not see in /proc.
type Program struct {
	Path string `json:"path"`
	// ID changes when the file is replaced.
	ID string `json:"id"`
}

// ThisProgram identifies the file of this program; the zero value if it cannot be determined.
func ThisProgram() Program {
	path, err := os.Executable()
	if err != nil {
		return Program{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return Program{}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Program{}
	}
	return Program{path, fmt.Sprintf("%d:%d:%d", stat.Dev, stat.Ino, info.ModTime().UnixNano())}
}

// InstanceQueue is one queue that an environment works on.
type InstanceQueue struct {
	Name            string `json:"name"`
	URL             string `json:"url"`                         // for producers
	DeadLetterQueue string `json:"dead_letter_queue,omitempty"` // its name; "" without one
	Embedded        bool   `json:"embedded"`                    // it is not on Amazon SQS
}

// Queue returns the queue of that name, or the first for ""; the zero value
// when it works on no such queue.
func (i *Instance) Queue(name string) InstanceQueue {
	for _, q := range i.Queues {
		if name == "" || name == q.Name {
			return q
		}
	}
	return InstanceQueue{}
}

// ConsoleURL is the URL of the console; "" when it is off.
func (i *Instance) ConsoleURL() string {
	switch {
	case i.Console == "":
		return ""
	case i.ConsoleCertificate != "":
		return "https://" + i.Console
	}
	return "http://" + i.Console
}

// Embedded reports whether the instance serves its own queues.
func (i *Instance) Embedded() bool { return i.Endpoint != "" }

// Write puts the instance into its file in dataDir, mode 0600, whole or not at
// all.
func (i *Instance) Write(dataDir string) error {
	data, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	return datadir.Replace(filepath.Join(dataDir, InstanceFile), append(data, '\n'), 0o600)
}

// RemoveInstance removes the file from dataDir; a missing one is not an error.
func RemoveInstance(dataDir string) error { return remove(filepath.Join(dataDir, InstanceFile)) }

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ReadInstance returns the environment that runs on dataDir. The error wraps
// [ErrNotRunning] when there is none: no file, or a file that a process left
// behind which holds the claim no more. The process id says nothing: another process may have got it since.
func ReadInstance(dataDir string) (*Instance, error) {
	path := filepath.Join(dataDir, InstanceFile)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, notRunning(dataDir)
	case errors.Is(err, fs.ErrPermission):
		return nil, foreign(path)
	case err != nil:
		return nil, fmt.Errorf("reading which environment runs: %w", err)
	}
	var i Instance
	if err := json.Unmarshal(data, &i); err != nil {
		return nil, &Error{Message: fmt.Sprintf("%s is damaged: %v", path, err),
			Hint: "remove it if no environment runs there", cause: err}
	}
	switch claimed, err := isClaimed(dataDir); {
	case errors.Is(err, fs.ErrPermission):
		return nil, foreign(filepath.Join(dataDir, claimFile))
	case err != nil:
		return nil, fmt.Errorf("reading whether an environment runs: %w", err)
	case !claimed:
		return nil, notRunning(dataDir)
	}
	return &i, nil
}

// DataDirectories returns the data directories in a state folder, and last the state folder itself, which all
// environments shared once.
func DataDirectories(stateFolder string) (dirs []string) {
	if stateFolder == "" {
		return nil
	}
	folder := datadir.Of(stateFolder, "")
	entries, _ := os.ReadDir(folder) // what cannot be read has none
	for _, entry := range entries {
		dirs = append(dirs, filepath.Join(folder, entry.Name()))
	}
	return append(dirs, stateFolder)
}

// Found is an environment that runs on this machine, and its data directory.
type Found struct {
	DataDir string
	Instance
}

// Running returns the environments that run on the data directories dirs, sorted by name. Those of other users that
// cannot be read are left out.
func Running(dirs []string) (all []Found) {
	for _, dir := range dirs {
		if i, err := ReadInstance(dir); err == nil {
			all = append(all, Found{dir, *i})
		}
	}
	slices.SortFunc(all, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.DataDir, b.DataDir))
	})
	return all
}

func notRunning(dataDir string) error {
	return &Error{Message: fmt.Sprintf("%v on %s", ErrNotRunning, dataDir),
		Hint: "start one with 'tendril up' or name another --data-dir", cause: ErrNotRunning}
}

func foreign(path string) error {
	return &Error{Message: "reading " + path + " is not allowed: it belongs to another user",
		Hint: "run this as the user that runs the environment", cause: fs.ErrPermission}
}

// ProcessAlive reports whether a process of that id runs on this machine,
// whoever owns it.
func ProcessAlive(pid int) bool {
	if pid <= 0 {
		return false
	}
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// claimFile is the name of the file in the data directory whose lock the one
// process holds that the other commands find there.
const claimFile = "instance.lock"

// ErrClaimed means that another process is the environment of the data
// directory.
var ErrClaimed = errors.New("another environment runs")

// Claim makes this process the one whose instance file and token lie in dataDir,
// which must exist, until release is called or the process ends, however it
// ends. Without it a second process would overwrite the files of the first, and
// remove them when it ends. The error wraps [ErrClaimed] when another living
// process has them.
func Claim(dataDir string) (release func() error, err error) {
	f, err := datadir.OpenFile(filepath.Join(dataDir, claimFile))
	if err != nil {
		return nil, fmt.Errorf("claiming the data directory: %w; name another with --data-dir", err)
	}
	err = lockExclusive(f)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%w on %s", ErrClaimed, dataDir)
		// One that is starting has not written it down yet.
		if i, readErr := ReadInstance(dataDir); readErr == nil {
			err = fmt.Errorf("%w: %q, process %d", err, i.Environment, i.PID)
		}
	} else if err != nil {
		err = fmt.Errorf("locking %s: %w; name another folder with --data-dir", f.Name(), err)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Unlocked before it is closed: a process that is just being started may hold
	// a copy of the descriptor.
	return func() error { return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close()) }, nil
}

// claimTries bounds how often a claim is tried while others only look at it, each for an instant.
const claimTries = 100

// lockExclusive locks a file, unless another process has it locked as exclusively. [isClaimed] shares the lock for an
// instant, which must not keep an environment from its start.
func lockExclusive(f *os.File) (err error) {
	for range claimTries {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if shared := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); shared != nil {
			return shared
		}
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
		<-time.After(time.Millisecond)
	}
	return err
}

// isClaimed reports whether a living process has the claim of a data directory.
func isClaimed(dataDir string) (claimed bool, err error) {
	f, err := os.OpenFile(filepath.Join(dataDir, claimFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if claimed = errors.Is(err, syscall.EWOULDBLOCK); claimed {
		return true, f.Close()
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // before the end of a copy that a process being started may hold
	return false, errors.Join(err, f.Close())
}

// TokenFile is the name of the file in the data directory that holds the
// console's token.
const TokenFile = "console.token"

// NewToken returns 256 random bits as 64 hexadecimal digits.
func NewToken() string {
	var raw [32]byte
	rand.Read(raw[:]) // never fails: the runtime ends the program where no randomness is to be had
	return hex.EncodeToString(raw[:])
}

// WriteToken puts the token into its file in dataDir, mode 0600, whatever the
// mode of a file that was there.
func WriteToken(dataDir, token string) error {
	return datadir.Replace(filepath.Join(dataDir, TokenFile), []byte(token+"\n"), 0o600)
}

// RemoveToken removes the file from dataDir; a missing one is not an error.
func RemoveToken(dataDir string) error { return remove(filepath.Join(dataDir, TokenFile)) }

// ReadToken returns the token in dataDir.
func ReadToken(dataDir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dataDir, TokenFile))
	return strings.TrimSpace(string(data)), err
}
