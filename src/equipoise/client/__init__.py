"""The HTTP client of the service: the verbs of `Experiment`, synchronous and asynchronous."""

from equipoise.client.async_experiment import AsyncRemoteExperiment
from equipoise.client.client import AsyncClient, Client, RemoteExperiment

__all__ = ["AsyncClient", "AsyncRemoteExperiment", "Client", "RemoteExperiment"]
