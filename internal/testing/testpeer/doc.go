// Package testpeer provides tests with the third-party programs they run against.
//
// Tests without their program are skipped. Environment variables:
//
//	TENDRIL_PYTHON           Python with the packages of the test; default python3
//	TENDRIL_PYTHON_QUERY     Python with packages from before November 2023, which use the Query protocol
//	TENDRIL_PYTHON_MINISTACK Python with MiniStack
//	TENDRIL_JAVA_SQS         folder of Java archives: the SDK for Java with its dependencies
//	TENDRIL_JAVA_SQS_QUERY   the same, from before November 2023
//	TENDRIL_JAVA_ELASTICMQ   folder of Java archives: ElasticMQ with its dependencies
//	TENDRIL_NODE_MODULES     folder node_modules
//	TENDRIL_REQUIRE_PEERS    1 to fail instead of skipping
package testpeer
