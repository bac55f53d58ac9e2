package archives

import (
	"os"
	"testing"

	"tendril/internal/testing/testpeer"
)

func TestMain(m *testing.M) {
	os.Exit(testpeer.Contained(m, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test").Run())
}
