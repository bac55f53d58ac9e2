package api

import (
	"time"
)

// MaxDeploy limits a deployment, including the last deliveries to the previous version.
const MaxDeploy = 15 * time.Minute
