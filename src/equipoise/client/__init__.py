"""Experiments of a service, over HTTP: the verbs of `Experiment`, with and without `await`."""

from equipoise.client.asynchronous import AsyncClient, AsyncRemoteExperiment
from equipoise.client.synchronous import Client, RemoteExperiment

__all__ = ["AsyncClient", "AsyncRemoteExperiment", "Client", "RemoteExperiment"]
