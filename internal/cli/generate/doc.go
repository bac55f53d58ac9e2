// Package generate writes deployment files: systemd units, a Dockerfile, and files for Docker Compose, Kubernetes and
// KEDA.
//
// Files contain no secrets: a [Plan] lists the variables with secret values, and the files refer to them. Timeouts are
// chosen so that the platform does not kill the process during a drain.
package generate
