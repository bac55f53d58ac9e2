package testpeer

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Contained(m).Run()) }
