package api

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestOneClaimsADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	release, err := Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(dir); !errors.Is(err, ErrClaimed) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second claim: %v", err)
	}
	own := &Instance{PID: os.Getpid(), Environment: "letters"}
	if err := own.Write(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(dir); !errors.Is(err, ErrClaimed) || !strings.Contains(err.Error(), `"letters", process `) {
		t.Errorf("a second claim says %v, and not whose it is", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	again, err := Claim(dir)
	if err != nil {
		t.Fatalf("released, and not to be had, whatever file is left: %v", err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
	if _, err := Claim(dir + "/missing"); err == nil || errors.Is(err, ErrClaimed) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestClaimWaitsForALookThatWasPaused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		look, err := os.Create(filepath.Join(dir, claimFile))
		if err != nil {
			t.Fatal(err)
		}
		defer look.Close()
		fd := int(look.Fd())
		if err := syscall.Flock(fd, syscall.LOCK_SH); err != nil {
			t.Fatal(err)
		}
		unlock := time.AfterFunc(3*time.Second, func() { _ = syscall.Flock(fd, syscall.LOCK_UN) })
		defer unlock.Stop()
		release, err := Claim(dir)
		synctest.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if err := release(); err != nil {
			t.Error(err)
		}
	})
}

func TestLooksDoNotKeepAnEnvironmentFromItsStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	claimed, err := isClaimed(dir)
	if claimed || err != nil {
		t.Fatalf("before any claim: %v, %v", claimed, err)
	}
	done := make(chan struct{})
	var looks sync.WaitGroup
	defer looks.Wait()
	defer close(done)
	for range 4 {
		looks.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_, _ = isClaimed(dir)
				}
			}
		})
	}
	for range 20 {
		release, err := Claim(dir)
		if err != nil {
			t.Fatal(err)
		}
		if claimed, err := isClaimed(dir); !claimed || err != nil {
			t.Errorf("while it is claimed: %v, %v", claimed, err)
		}
		if err := release(); err != nil {
			t.Fatal(err)
		}
	}
}
