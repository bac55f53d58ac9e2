// Package provision prints files for deployments, and creates and deletes resources on Amazon.
//
// generate prints units, manifests and policies; alarms applies CloudWatch alarms and a dashboard; terminate deletes what
// an environment created.
package provision
