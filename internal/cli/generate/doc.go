// Package generate writes deployment files: systemd units, a Dockerfile, and files for Docker Compose, Kubernetes and
// KEDA.
//
//	settings in force, the app's folder ──> Plan ──template──> []File
//
// Each kind of file is a template in the folder templates, derived from the files in deploy. Tests compare
// deploy/docker/compose.yaml and the manifests in deploy/kubernetes with the output of this package.
//
// # Invariants
//
// Files contain no secrets: a [Plan] lists the variables with secret values, and the files refer to them. Settings from
// outside the app's folder become flags of 'tendril up'. Timeouts are chosen so that the platform does not kill the
// process during a drain.
//
// The caller creates the plan; this package reads no settings.
package generate
