// Package provision prints deployment files, and deletes the AWS resources of an environment.
//
// generate prints units, manifests, policies and templates. terminate deletes the resources that an environment
// created.
package provision
