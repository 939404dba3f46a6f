"""What CONFIGURE states beside the samples' preparation: fixed inputs, and which outputs return."""
