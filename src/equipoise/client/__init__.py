"""Experiments of a service, over HTTP: the verbs of `Experiment`, with and without `await`."""

from equipoise.client.async_experiment import AsyncRemoteExperiment
from equipoise.client.client import AsyncClient, Client, RemoteExperiment

__all__ = ["AsyncClient", "AsyncRemoteExperiment", "Client", "RemoteExperiment"]
