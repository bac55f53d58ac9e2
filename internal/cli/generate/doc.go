// Package generate writes the files that a worker environment is deployed with: units of systemd, a Dockerfile, and
// files of Docker Compose, Kubernetes and KEDA.
//
//	settings in force, the app's folder ──> Plan ──template──> []File
//
// Each kind of file is one template in the folder templates. They come from the files of deploy, which tests hold to
// what the tools accept; deploy/docker/compose.yaml and the manifests in deploy/kubernetes are what this package makes
// of certain settings, and a test compares them.
//
// # Invariants
//
// A file holds no secret: a [Plan] has the names of variables whose values are secret, and the files refer to them. It
// holds every setting that is not in the app's folder, as a flag of 'tendril up'. The times fit: the platform kills
// later than the drain and the stop of the app take.
//
// The package asks nobody and reads no settings: the command makes the plan.
package generate
