"""The person's side: pages, forms and what keeps them live."""
