const größe = { 'ä😀': 1 }; /* 😀😀 */ return größe.maße.breite;
