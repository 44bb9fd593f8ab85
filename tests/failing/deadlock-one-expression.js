new Promise(() => {})
