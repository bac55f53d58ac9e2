// Package provision prints deployment files, and creates and deletes AWS resources.
//
// generate prints units, manifests and policies; alarms manages CloudWatch alarms and a dashboard; terminate deletes
// the resources an environment created.
package provision
