// Package bundle reads an Elastic Beanstalk source bundle.
//
// A bundle is a folder, or a zip archive of one, with an app and instructions for running it:
//
//	Procfile               web: the app            -> Processes, Web
//	                       name: another process
//	Buildfile              name: command           -> Build
//	.ebextensions/*.config option_settings         -> Settings, Environment
//	                       Resources               -> Resources, Unsupported
//	                       container_commands      -> ContainerCommands
//	                       packages, files, ...    -> Machine
//	                       any other section       -> Unsupported
//	env.yaml               OptionSettings          -> Settings, the strongest
//	                       EnvironmentLinks        -> Links
//	                       name, tier              -> Manifest
//	.platform/hooks/STAGE/ programs                -> Hooks
//	.platform/confighooks/ programs                -> ConfigHooks
//	cron.yaml                                      -> Cron
//	package.json, application.py, ...              -> Default, if there is no Procfile
//
// [Open] reads everything at once and starts nothing. Configuration files are read in byte order of their names; the
// last setting of an option is in force. Errors, findings and String methods never contain values that look secret.
//
// Input that could overload a parser is rejected before parsing. Written bytes are counted while unpacking, because an
// archive's headers may lie.
//
// The package runs no commands, expands no variables and does not validate option values. It ignores .ebignore.
package bundle
