"""Topic model (latent Dirichlet allocation): topic blocks in closed form, primal search, certified pricing."""

# Registers the block with branch-and-price.
from certimap.topics.block import TopicBlock
from certimap.topics.factor import TopicClusters, topic_clusters, topic_model

__all__ = ["TopicBlock", "TopicClusters", "topic_clusters", "topic_model"]
