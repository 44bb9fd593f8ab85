try {
  await demo.flaky_report({ period: "hour" });
} catch (error) {
  return error.response.status;
}
