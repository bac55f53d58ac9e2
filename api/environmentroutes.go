package api

import (
	"time"
)

// MaxDeploy is the longest that one deployment may take, the last delivery of
// the old version included.
const MaxDeploy = 15 * time.Minute
