"""Topic model (latent Dirichlet allocation): topic blocks in closed form, primal search, certified pricing."""
