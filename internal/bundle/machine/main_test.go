package machine

import (
	"os"
	"testing"

	"tendril/internal/testing/testpeer"
)

func TestMain(m *testing.M) { os.Exit(testpeer.Contained(m).Run()) }
