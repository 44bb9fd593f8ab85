return 10n + 1
