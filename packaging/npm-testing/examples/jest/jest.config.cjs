module.exports = {
  rootDir: "..",
  testMatch: ["<rootDir>/jest/*.test.cjs"],
  globalSetup: "<rootDir>/jest/global-setup.cjs",
  globalTeardown: "<rootDir>/jest/global-teardown.cjs",
  // All files share one copy, which each test takes back to its seed.
  maxWorkers: 1,
};
