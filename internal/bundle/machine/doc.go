// Package machine applies the sections of a bundle that change the machine.
//
// On Elastic Beanstalk, cfn-init applies them to instances created for the app. Tendril applies them only if the user
// asks for it.
//
//	bundle.Machine --> Plan --> Step, Step, ...          listed by "tendril check"
//	                              |
//	                              v
//	        files, archives <-- Applier --> System       package managers, groups, users,
//	        (os)                                         commands, services: programs
//
// For each configuration file, [Plan] orders the sections as cfn-init does: packages, groups, users, sources, files,
// commands, services. An [Applier] applies the steps in order and remembers which ones changed something, to restart
// the services that depend on them.
//
// # Invariants
//
//   - A step changes nothing if the machine is already in the desired state. Packages, users, groups and services are
//     queried first, and the content, mode and owner of files are compared. Commands are the exception: they run each
//     time, unless their test fails.
//   - A file is replaced atomically by a rename, and the previous one is kept with the suffix .bak.
//   - An archive is never unpacked outside its folder, regardless of its names and links.
//   - Downloads use TLS or come from this machine, and their size is limited.
//
// # Limits
//
// Nothing is undone: a failed deployment leaves the changes made so far. The caller must check whether it may change
// the machine and runs as root.
package machine
