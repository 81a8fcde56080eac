// Package gateway assembles a gateway from a configuration: agents, services, health, reflection, and an orderly
// end.
package gateway
